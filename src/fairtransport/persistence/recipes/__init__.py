"""How each class is stored in a model file: an explicit list of attributes."""
