# Pages by node of the mapping that has the most anonymous pages: NODE=PAGES,…
{
    anonymous = 0; nodes = ""
    for (i = 1; i <= NF; i++) {
        if ($i ~ /^anon=/) anonymous = substr($i, 6) + 0
        if ($i ~ /^N[0-9]+=/) nodes = nodes (nodes == "" ? "" : ",") substr($i, 2)
    }
    if (anonymous > most) { most = anonymous; found = nodes }
}
END { print found == "" ? "-" : found }
