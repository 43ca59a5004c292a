"""What describes the tables of a tree: releases.json, task file, card, figures, manifest (DESIGN section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builder import card, documents, figures, gitattributes, manifest, releases_document, tasks
from builder.calibrate import LINK
from builder.card_facts import read_facts
from builder.diff.compare import relation_to
from builder.diff.sides import described_side, open_side
from builder.digests import sha256_file
from builder.layout import ASSETS, GITATTRIBUTES, MANIFEST, README, RELEASES, TASK_FILE, Config, configs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from builder.assemble import Work
    from builder.judged import Judged


def seal(work: Work, judged: Judged, tag: str) -> dict[str, Any]:
    """Write what describes the tables: releases.json, task file, card, manifest; return what a person wants to know."""
    request, tree = work.request, work.tree
    benchmark = request.benchmark
    judge = benchmark.judge(request.judge)
    with work.steps.time("card and manifest"):
        present = frozenset(path.name for path in (tree / "provenance").iterdir() if path.is_dir())
        listed = list(configs(benchmark, work.corpus_files, present=present))
        tables = manifest.describe(tree, listed, work.store.runner.map)
        data = {name: fact["sha256"] for name, fact in tables.items()}
        releases = releases_document.document(
            benchmark,
            request.numbering,
            releases_document.entry(
                benchmark,
                judge,
                request.numbering,
                calibration={"made": judged.made, "link": judged.item_params.get("link", LINK)},
                upstream={name: source.pin() for name, source in request.upstream.items()},
                files=data,
            ),
        )
        documents.write(releases, tree / RELEASES)
        if request.against is not None:
            before = open_side(request.against.path, request.against.uri)
            own = releases["releases"][-1]
            own["relation"] = relation_to(before, described_side(tree, listed, tables), benchmark)
            documents.write(releases, tree / RELEASES)
        (tree / GITATTRIBUTES).write_text(gitattributes.TEXT, encoding="utf-8", newline="\n")
        rows = _config_rows(listed, tables)
        sums = {name: digest for name, digest in data.items() if name.endswith(".parquet")}
        task_file = tasks.render(benchmark, tag=tag, files=sums, withdrawn=releases_document.withdrawn(releases))
        (tree / TASK_FILE).write_text(task_file, encoding="utf-8", newline="\n")
        facts = read_facts(tree, benchmark, listed)
        drawn = figures.draw(facts, tree / ASSETS) if request.figures else ()
        (tree / README).write_text(card.render(facts, card.figures_of(tree)).text, encoding="utf-8", newline="\n")
        assets = [f"{ASSETS}/{name}.{kind}" for name in drawn for kind in ("png", "svg")]
        for name in (GITATTRIBUTES, TASK_FILE, README, RELEASES, *assets):
            tables[name] = manifest.describe_file(tree / name, None, [])
        document = manifest.assemble(
            tables,
            listed,
            {name: dict(data.pages.frame.select("id", "sha256").iter_rows()) for name, data in work.upstream.items()},
            settings={"judge": judge.name, "figures": request.figures},
            inputs=_inputs(work),
        )
        documents.write(document, tree / MANIFEST)
    fit = judged.item_params.get("fit", {})
    return {
        "rows": rows,
        "windows": judged.windows["domains"] if judged.windows is not None else None,
        "objective": fit.get("objective"),
        "iterations": fit.get("iterations"),
    }


def _inputs(work: Work) -> manifest.Inputs:
    """What the tree was made from, and the digest of each file of it."""
    if work.request.record is not None:
        return work.request.record
    uris = {f"upstream/{name}": source.pin() for name, source in work.request.upstream.items()}
    upstream = dict(zip(work.read, work.store.runner.map(sha256_file, work.read.values()), strict=True))
    against = work.request.against
    if against is not None:
        uris["predecessor"] = against.pin()
        upstream[f"predecessor/{MANIFEST}"] = sha256_file(against.path / MANIFEST)
    root = work.inputs.path
    inputs = {f"inputs/{file.relative_to(root).as_posix()}": work.digests[file] for file in work.inputs.files()}
    return manifest.Inputs(uris | {"inputs": work.request.inputs.pin()}, upstream | inputs)


def _config_rows(listed: list[Config], files: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Rows a config, over its splits."""
    return {
        config.name: sum(files[file]["rows"] for names in config.files.values() for file in names) for config in listed
    }
