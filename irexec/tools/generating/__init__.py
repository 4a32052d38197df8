"""Text from a language model, token by token, beside another runtime if wanted."""

from irexec.tools.generating.run import GenerateOptions, Generation, Token, generate

__all__ = ["GenerateOptions", "Generation", "Token", "generate"]
