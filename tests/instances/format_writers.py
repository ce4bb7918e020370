"""Graphs and models as people write them: one function a format, from what is meant to the bytes of a file.

A graph is (n, {(u, v): weight}) with u < v, nodes from 0 on; weights are multiples of 1/4, so that sums are exact.
"""

from hypothesis import strategies as st

WEIGHT = st.integers(-40, 40).map(lambda k: k / 4)


@st.composite
def graphs(draw, weight=WEIGHT, max_nodes=7, min_edges=0):
    n = draw(st.integers(2 if min_edges else 1, max_nodes))
    pairs = [(u, v) for v in range(n) for u in range(v)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=min_edges)) if pairs else []
    return n, {pair: draw(weight) for pair in chosen}


def turned(edges, rng):
    """Edges in any order and direction."""
    rows = [(u, v, w) if rng.random() < 0.5 else (v, u, w) for (u, v), w in edges.items()]
    rng.shuffle(rows)
    return rows


def lines(rows, rng, comment=None):
    """Words as lines with any blanks between them, and comments and empty lines if the format has comments."""
    text = []
    for row in rows:
        if comment and rng.random() < 0.2:
            text.append(rng.choice([comment + " 7 7 7", "", "  "]))
        text.append(
            " " * rng.randrange(2) + rng.choice([" ", "\t", "   "]).join(map(str, row)) + rng.choice(["", " "])
        )
    end = rng.choice(["\n", "\r\n"])
    return (end.join(text) + (end if rng.random() < 0.7 else "")).encode()


def rudy(graph, rng, weighted=True, torus=False):
    n, edges = graph
    rows = [(u + 1, v + 1, *([w] if weighted else [])) for u, v, w in turned(edges, rng)]
    return lines([(n, len(edges), *([0] if torus else [])), *rows], rng, "#")


def dimacs(graph, rng):
    n, edges = graph
    rows = [("e", u + 1, v + 1) for u, v, _ in turned(edges, rng) for _ in range(rng.choice([1, 1, 2]))]
    rows += [("e", v, u) for _, u, v in rows if rng.random() < 0.3]
    promised = rng.choice([len(edges), 2 * len(edges), len(rows)])
    extra = [("n", node, node + 4) for node in range(1, n + 1) if rng.random() < 0.3]
    return lines([("p", rng.choice(["edge", "col"]), n, promised), *extra, *rows], rng, "c")


def metis(graph, rng, weighted=False, sizes=False, ncon=0):
    n, edges = graph
    fmt = f"{int(sizes)}{int(bool(ncon))}{int(weighted)}"
    header = [n, len(edges)]
    if fmt != "000" or rng.random() < 0.5:
        header.append(fmt if rng.random() < 0.5 else fmt.lstrip("0") or "0")
        if ncon:
            header.append(ncon)
    rows = []
    for node in range(n):
        near = [(v if u == node else u, w) for u, v, w in turned(edges, rng) if node in (u, v)]
        row = [9] * int(sizes) + [3] * ncon
        for other, weight in near:
            row += [other + 1, int(weight)] if weighted else [other + 1]
        rows.append(" ".join(map(str, row)))
    text = "".join(
        ("% note\n" if rng.random() < 0.2 else "") + row + "\n" for row in [" ".join(map(str, header)), *rows]
    )
    return text.encode()


def edge_list(graph, rng, names, weighted):
    _, edges = graph
    rows = [(names[u], names[v], *([w] if weighted else [])) for u, v, w in turned(edges, rng)]
    rows += [(v, u, *w) for u, v, *w in rows if rng.random() < 0.3]
    return lines(rows, rng, "%")


def coordinate(n, entries, rng, field, symmetry):
    """A MatrixMarket file of {(i, j): value}."""
    rows = [(i + 1, j + 1, *([] if field == "pattern" else [v])) for (i, j), v in entries.items()]
    rng.shuffle(rows)
    banner = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n"
    return f"{banner}% 7 7 7\n".encode() + lines([(n, n, len(rows)), *rows], rng)


def array(matrix, symmetry):
    n = len(matrix)
    values = [matrix[i][j] for j in range(n) for i in range(j if symmetry == "symmetric" else 0, n)]
    return (
        f"%%MatrixMarket matrix array real {symmetry}\n{n} {n}\n{''.join(f'{v}{chr(10)}' for v in values)}".encode()
    )


def qbsolv(n, matrix, rng):
    nodes = [(i, i, matrix[i, i]) for i in range(n) if matrix[i, i]]
    couplers = [(i, j, matrix[i, j]) for i in range(n) for j in range(i + 1, n) if matrix[i, j]]
    header = ("p", "qubo", rng.choice([0, "unconstrained"]), n, len(nodes), len(couplers))
    return lines([header, *nodes, *couplers], rng, "c")
