"""Text from a language model, token by token, beside another runtime if wanted."""

from irexec.tools.generating.options import GenerateOptions
from irexec.tools.generating.result import Generation, Token
from irexec.tools.generating.run import generate

__all__ = ["GenerateOptions", "Generation", "Token", "generate"]
