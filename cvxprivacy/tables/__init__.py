"""Records: frames of any engine, how they are counted, and the tables of the papers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
