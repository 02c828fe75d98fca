"""torch-fidelity: inception, Frechet and kernel scores from given features."""

from recording import array, record
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_isc import isc_features_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric

one, two = array(0, 200, 16), array(1, 200, 16) + 0.3
record("isc", dict(isc_features_to_metric(one, splits=4, rng_seed=3)))
statistics = [fid_features_to_statistics(each) for each in (one, two)]
record("fid", dict(fid_statistics_to_metric(*statistics, verbose=False)), rtol=5e-3)
record(
    "kid",
    dict(kid_features_to_metric(one, two, kid_subsets=5, kid_subset_size=50, verbose=False)),
    rtol=1e-2,
)
record("prc", dict(prc_features_to_metric(one, two, verbose=False)), rtol=1e-2)
