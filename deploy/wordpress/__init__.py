"""The WordPress plugin, and how it is packed."""
