"""Statistical disclosure control with certified releases: tables in, released tables out.

>>> import cvxprivacy as cpv
>>> import cvxprivacy_sdc as sdc
>>> source = cpv.DiscreteSource.from_counts([[4, 1, 1], [1, 2, 2]])
>>> sdc.optimal_intervals(source, [cpv.KAnonymity(5)]).groups
['0', '[1, 2]', '[1, 2]']
"""

import lazy_loader

# Importing pandas and scikit-learn takes a second or two, so every name is loaded when first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "1.0.0rc1"
