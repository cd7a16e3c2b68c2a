"""Refused: the class has another name."""


class Model:
    pass
