"""Parts of translations that operators of several families or domains share."""
