# The public names, once: type checkers read them here, and each is loaded when it is first used.

from . import plotting as plotting
from . import reference as reference
from .criteria import (
    Criterion as Criterion,
)
from .criteria import (
    DeltaDisclosure as DeltaDisclosure,
)
from .criteria import (
    ForbiddenMoves as ForbiddenMoves,
)
from .criteria import (
    KAnonymity as KAnonymity,
)
from .criteria import (
    KeepProbability as KeepProbability,
)
from .criteria import (
    LDiversity as LDiversity,
)
from .criteria import (
    LeakageCap as LeakageCap,
)
from .criteria import (
    Linear as Linear,
)
from .criteria import (
    LocalPrivacy as LocalPrivacy,
)
from .criteria import (
    MaximalLeakage as MaximalLeakage,
)
from .criteria import (
    PreserveMarginal as PreserveMarginal,
)
from .criteria import (
    PreserveMean as PreserveMean,
)
from .criteria import (
    TCloseness as TCloseness,
)
from .errors import (
    CertificationError as CertificationError,
)
from .errors import (
    InfeasibleError as InfeasibleError,
)
from .errors import (
    InputError as InputError,
)
from .errors import (
    UnknownValueError as UnknownValueError,
)
from .errors import (
    UnseenValueWarning as UnseenValueWarning,
)
from .formulations.channel import ChannelProblem as ChannelProblem
from .formulations.covariance import CovarianceProblem as CovarianceProblem
from .formulations.equivocation import RateDistortionEquivocation as RateDistortionEquivocation
from .formulations.gaussian import (
    GaussianEquivocation as GaussianEquivocation,
)
from .formulations.gaussian import (
    QuadraticGaussian as QuadraticGaussian,
)
from .formulations.hamming import HammingWaterFilling as HammingWaterFilling
from .formulations.minimum_distortion import MinimumDistortion as MinimumDistortion
from .formulations.privacy_distortion import PrivacyDistortion as PrivacyDistortion
from .formulations.water_filling import (
    BoxWaterFilling as BoxWaterFilling,
)
from .formulations.water_filling import (
    ReverseWaterFilling as ReverseWaterFilling,
)
from .formulations.water_filling import (
    closed_gaussian_bound as closed_gaussian_bound,
)
from .frontiers.frontier import Frontier as Frontier
from .frontiers.surface import (
    Surface as Surface,
)
from .frontiers.surface import (
    surface as surface,
)
from .frontiers.sweep import (
    Sweep as Sweep,
)
from .frontiers.sweep import (
    frontier as frontier,
)
from .frontiers.sweep import (
    sweep as sweep,
)
from .microdata.audit import (
    Audit as Audit,
)
from .microdata.audit import (
    audit as audit,
)
from .microdata.compare import (
    Comparison as Comparison,
)
from .microdata.compare import (
    compare as compare,
)
from .microdata.determinism import price_of_determinism as price_of_determinism
from .microdata.full_domain import full_domain as full_domain
from .microdata.generalise import (
    Generalisation as Generalisation,
)
from .microdata.generalise import (
    optimal_intervals as optimal_intervals,
)
from .microdata.hierarchy import Hierarchy as Hierarchy
from .microdata.untouched import untouched as untouched
from .model import (
    information as information,
)
from .model import (
    one_symbol as one_symbol,
)
from .model.discrete import DiscreteSource as DiscreteSource
from .model.distortion import (
    Distortion as Distortion,
)
from .model.distortion import (
    absolute_error as absolute_error,
)
from .model.distortion import (
    hamming as hamming,
)
from .model.distortion import (
    hierarchy_distance as hierarchy_distance,
)
from .model.distortion import (
    ordinal as ordinal,
)
from .model.distortion import (
    per_attribute as per_attribute,
)
from .model.distortion import (
    squared_error as squared_error,
)
from .model.gaussian import GaussianSource as GaussianSource
from .proving.certificate import Certificate as Certificate
from .release.channel import (
    Channel as Channel,
)
from .release.channel import (
    GaussianRelease as GaussianRelease,
)
from .release.decoder import Decoder as Decoder
from .release.estimation import Estimate as Estimate
from .release.hamming import HammingChannel as HammingChannel
from .results.recount import recount as recount
from .results.solution import (
    Enclosure as Enclosure,
)
from .results.solution import (
    GaussianSolution as GaussianSolution,
)
from .results.solution import (
    Solution as Solution,
)
from .tables import datasets as datasets
from .tables.bins import Bins as Bins
from .tables.frames import Coding as Coding

__version__: str
