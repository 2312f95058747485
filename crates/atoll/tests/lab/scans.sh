# scans.sh: the same table and the same scan under three placements. Each process has a number of its
# own, by which the counter tells its queries (region) and its table's pages (tag) apart.
number=0
for placement in aligned default spread; do
    number=$((number + 1))
    ATOLL_LAB=$number "$ATOLL" sql --placement $placement --mode csv \
        -c 'CREATE TABLE t AS SELECT value AS a, value * 7368787 % 999999937 AS b
            FROM generate_series(1, 1048576)' \
        -c "SELECT 'sum', sum(a), sum(b), count(*) FROM t WHERE b % 7 <> 3" \
        -c "SELECT 'home', found_node, sum(pages) FROM atoll.pages WHERE \"table\" = 't' GROUP BY found_node" \
        -c "SELECT 'worker', worker, node, bound, cpus_found FROM atoll.workers ORDER BY worker" |
        sed "s/^/$placement,/"
done
