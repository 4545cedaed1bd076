# How columns of a table become letters; each name is loaded when it is first used.

from . import datasets as datasets
from .bins import Bins as Bins
from .groups import Groups as Groups
from .periods import Periods as Periods
from .schema import TableSchema as TableSchema
