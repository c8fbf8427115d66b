"""Our steps and effects: the only code of this project that touches the world."""
