"""What is known before a release: laws, distortions, and the measures of information."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["information", "one_symbol"])
