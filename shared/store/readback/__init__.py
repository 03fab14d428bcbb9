"""Published pages that are followed until the engines know them, and what engines said of them."""
