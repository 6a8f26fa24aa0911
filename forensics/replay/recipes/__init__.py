"""Ready-made recipes, and the template of an own one."""
