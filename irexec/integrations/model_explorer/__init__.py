"""Extensions of Google's Model Explorer: ``model-explorer --extensions=irexec.integrations.model_explorer``."""
