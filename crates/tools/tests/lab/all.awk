# Bytes by node of all mappings: NODE=BYTES,…
{
    size = 4
    for (i = 1; i <= NF; i++) if ($i ~ /^kernelpagesize_kB=/) size = substr($i, 19) + 0
    for (i = 1; i <= NF; i++) if (split($i, part, "=") == 2 && part[1] ~ /^N[0-9]+$/)
        bytes[substr(part[1], 2)] += part[2] * size * 1024
}
END { for (node in bytes) { printf "%s%s=%d", separator, node, bytes[node]; separator = "," } print "" }
