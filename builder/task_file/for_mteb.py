"""RCP-nDCG tasks of one dataset release, for mteb's own loader: gains from the `gain` column of the qrels."""

from typing import Any

import datasets
from mteb.abstasks import AbsTaskRetrieval

from builder.task_file.rcp_ndcg_tasks import ndcg_float


class _RcpTask(AbsTaskRetrieval):  # type: ignore[misc]  # mteb has no types here
    """Scores `ndcg_float_at_<k>` beside mteb's own metrics."""

    def dataset_transform(self, num_proc: int | None = None, **kwargs: Any) -> None:  # noqa: ARG002
        """Read the gains; leave out what the view does not need."""
        self.gains: dict[str, dict[str, dict[str, float]]] = {}
        for subset in self.hf_subsets:
            for split in self.eval_splits:
                data = self.dataset[subset][split]
                if "RCPRetrieval" in self.metadata.name:
                    data["top_ranked"] = None
                if self.metadata.modalities == ["text"]:
                    data["corpus"] = data["corpus"].select_columns(["id", "text"])
                qrels = datasets.load_dataset(
                    self.metadata.dataset["path"],
                    f"{subset}-qrels",
                    split=split,
                    revision=self.metadata.dataset["revision"],
                )
                gains = self.gains[subset] = {query: {} for query in data["relevant_docs"]}
                for row in qrels.select_columns(["query-id", "corpus-id", "gain"]):
                    if row["gain"] is not None:
                        gains[row["query-id"]][row["corpus-id"]] = row["gain"]

    def task_specific_scores(self, scores: Any, qrels: Any, results: Any, hf_split: str, hf_subset: str) -> Any:  # noqa: ARG002
        """The mean over all queries of the subset; a query without a ranking has 0."""
        cuts, gains = tuple(self.k_values), self.gains[hf_subset]
        rows = [ndcg_float(results.get(query, {}), gains[query], cuts) for query in qrels]
        return {f"ndcg_float_at_{k}": sum(row[k] for row in rows) / len(rows) for k in cuts}
