"""The one engine of counts, rates, differences and intervals; tables are declarations over it.

- :mod:`.axes`: where cases stand (data set, cell, cluster), their sums over cells and clusters, and margins.
- :mod:`.resampling`: the draws of clusters that all figures of a table share.
- :mod:`.rates`: rates with intervals over cells and pools.
- :mod:`.intervals`: intervals of single rates and differences.
- :mod:`.paired`: tests of paired cases, and the correction for their number.
"""
