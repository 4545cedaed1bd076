"""Information-theoretic privacy trade-offs as convex programs with certified optima.

>>> import cvxprivacy as cpv
>>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
>>> cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve().status
'certified'
"""

import lazy_loader

# Importing CVXPY takes a second or two, so every name is loaded when it is first used.
_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("cvxprivacy")
    if name == "verifier":  # a distribution of its own
        import cvxprivacy_verifier.verify

        return cvxprivacy_verifier
    return _loaded(name)
