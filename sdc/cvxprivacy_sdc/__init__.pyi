# The names that a user constructs or calls, once: type checkers read them here, and each is loaded
# when it is first used.

from . import (
    loss as loss,
    masking as masking,
    risk as risk,
)
from .auditing.group_criteria import (
    BetaLikeness as BetaLikeness,
    DistinctDiversity as DistinctDiversity,
    RecursiveDiversity as RecursiveDiversity,
)
from .auditing.report import audit as audit
from .auditing.several import audit_each as audit_each
from .copied.untouched import untouched as untouched
from .errors import BrokenTableError as BrokenTableError
from .recoding.full_domain import (
    full_domain as full_domain,
    price_of_determinism as price_of_determinism,
)
from .recoding.generalisation import Hierarchy as Hierarchy
from .recoding.intervals import optimal_intervals as optimal_intervals
from .recoding.recoded_key import recoded_key as recoded_key
from .releases.drawn_table import release_table as release_table
from .releases.sequel import Sequel as Sequel
from .utility.compare import compare as compare
from .utility.quality import quality as quality
from .whole_counts.whole_counts import WholeCounts as WholeCounts

__version__: str
