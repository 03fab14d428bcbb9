"""Every metric, declared once, and where its value comes from."""
