"""torchmetrics: metrics of classification, regression, retrieval, images, text and audio."""

import torch
import torchmetrics as tm
from recording import array, record
from torchmetrics import classification, functional as F, image, regression, retrieval, text

scores, labels = array(0, 60, 5).softmax(1), torch.arange(60) % 5
options = {"num_classes": 5, "average": "macro"}
metrics = tm.MetricCollection(
    {
        "accuracy": classification.MulticlassAccuracy(**options),
        "f1": classification.MulticlassF1Score(**options),
        "auroc": classification.MulticlassAUROC(**options),
        "ap": classification.MulticlassAveragePrecision(**options),
        "confusion": classification.MulticlassConfusionMatrix(5),
        "kappa": classification.MulticlassCohenKappa(5),
        "mcc": classification.MulticlassMatthewsCorrCoef(5),
        "calibration": classification.MulticlassCalibrationError(5),
    }
)
for start in range(0, 60, 20):
    metrics.update(scores[start : start + 20], labels[start : start + 20])
record("classes", metrics.compute())
clone = metrics.clone(prefix="again_")
clone.reset()
record("again", clone(scores, labels))
binary = classification.BinaryPrecisionRecallCurve(thresholds=20)
record("curve", list(binary(scores[:, 0], (labels == 0).long())))

one, two = array(1, 50), array(2, 50)
for kind in (
    "MeanSquaredError",
    "MeanAbsoluteError",
    "R2Score",
    "PearsonCorrCoef",
    "SpearmanCorrCoef",
    "KendallRankCorrCoef",
    "ExplainedVariance",
    "ConcordanceCorrCoef",
):
    record(kind, getattr(regression, kind)()(one, two))
groups = torch.arange(50) // 10
record("map", retrieval.RetrievalMAP()(one, two > 0, indexes=groups))
record("ndcg", retrieval.RetrievalNormalizedDCG()(one, (two > 0).long(), indexes=groups))
a, b = array(3, 2, 3, 32, 32).sigmoid(), array(4, 2, 3, 32, 32).sigmoid()
record("psnr", image.PeakSignalNoiseRatio(data_range=1.0)(a, b))
record("ssim", image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b))
record("variation", image.TotalVariation()(a))
record("bleu", text.BLEUScore()(["the cat sat on the mat"], [["a cat sat on the mat"]]))
record("wer", text.WordErrorRate()(["the cat sat"], ["the cat sat down"]))
record("perplexity", text.Perplexity()(array(5, 2, 6, 9), torch.arange(12).reshape(2, 6) % 9))
record("snr", F.signal_noise_ratio(array(6, 2, 100), array(7, 2, 100)))
record("sdr", F.scale_invariant_signal_distortion_ratio(array(6, 2, 100), array(7, 2, 100)))
record("cosine", F.pairwise_cosine_similarity(array(8, 4, 6)))
mean = tm.MeanMetric()
mean.update(array(9, 5), weight=array(10, 5).abs())
record("mean", mean.compute())
torch.save(metrics.state_dict(), "metrics.pt")
metrics.load_state_dict(torch.load("metrics.pt"))
running = tm.wrappers.MetricTracker(classification.MulticlassAccuracy(5))
for _ in range(3):
    running.increment()
    running.update(scores, labels)
record("best", running.best_metric())
