# The names that a user constructs or calls, once: type checkers read them here, and each is loaded
# when it is first used.  Classes of what comes back are in cvxprivacy.typing.

import cvxprivacy_verifier

from . import (
    leakage as leakage,
)
from .criteria import (
    CapacityCap as CapacityCap,
    ConditionalLeakageCap as ConditionalLeakageCap,
    Criterion as Criterion,
    DeltaDisclosure as DeltaDisclosure,
    ForbiddenMoves as ForbiddenMoves,
    KAnonymity as KAnonymity,
    KeepProbability as KeepProbability,
    LDiversity as LDiversity,
    LeakageCap as LeakageCap,
    Linear as Linear,
    LocalInformationPrivacy as LocalInformationPrivacy,
    LocalPrivacy as LocalPrivacy,
    MarginalDistance as MarginalDistance,
    MaximalLeakage as MaximalLeakage,
    PerfectPrivacy as PerfectPrivacy,
    PerLetter as PerLetter,
    PointwiseMaximalLeakage as PointwiseMaximalLeakage,
    PreserveMarginal as PreserveMarginal,
    PreserveMean as PreserveMean,
    RecordEntropy as RecordEntropy,
    TCloseness as TCloseness,
)
from .errors import (
    CertificationError as CertificationError,
    InfeasibleError as InfeasibleError,
    InputError as InputError,
)
from .formulations.channel import ChannelProblem as ChannelProblem
from .formulations.covariance import CovarianceProblem as CovarianceProblem
from .formulations.equivocation import RateDistortionEquivocation as RateDistortionEquivocation
from .formulations.gaussian_equivocation import GaussianEquivocation as GaussianEquivocation
from .formulations.hamming import HammingWaterFilling as HammingWaterFilling
from .formulations.minimum_distortion import MinimumDistortion as MinimumDistortion
from .formulations.most_useful import MostUsefulRelease as MostUsefulRelease
from .formulations.privacy_distortion import PrivacyDistortion as PrivacyDistortion
from .formulations.quadratic_gaussian import QuadraticGaussian as QuadraticGaussian
from .formulations.water_filling import (
    BoxWaterFilling as BoxWaterFilling,
    ReverseWaterFilling as ReverseWaterFilling,
    closed_gaussian_bound as closed_gaussian_bound,
)
from .frontiers.many import solve_all as solve_all
from .frontiers.surface import (
    surface as surface,
)
from .frontiers.sweep import (
    frontier as frontier,
    sweep as sweep,
)
from .model import (
    information as information,
    one_symbol as one_symbol,
)
from .model.attributes import per_attribute as per_attribute
from .model.discrete import DiscreteSource as DiscreteSource
from .model.distortion import (
    Distortion as Distortion,
    absolute_error as absolute_error,
    hamming as hamming,
    hierarchy_distance as hierarchy_distance,
    ordinal as ordinal,
    squared_error as squared_error,
)
from .model.gaussian import GaussianSource as GaussianSource
from .programs.parameter import Parameter as Parameter
from .release.channel import Channel as Channel
from .release.decoder import Decoder as Decoder
from .release.gaussian import GaussianRelease as GaussianRelease
from .results.capacity import capacity as capacity
from .results.comparison import compare_channels as compare_channels
from .results.privacy_profile import PrivacyProfile as PrivacyProfile
from .tables import datasets as datasets

verifier = cvxprivacy_verifier
__version__: str
