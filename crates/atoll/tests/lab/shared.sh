# shared.sh: selections that ride shared scans, over a table that is aligned and over one that lies on one node. Each
# process has a number of its own, by which the counter tells its cycles (region) and its table's pages (tag) apart.
number=0
for placement in aligned 'preferred(0)'; do
    number=$((number + 1))
    ATOLL_LAB=$number "$ATOLL" sql --placement "$placement" --mode csv \
        -c 'CREATE TABLE t AS SELECT value AS a, value * 7368787 % 999999937 AS b
            FROM generate_series(1, 1048576)' \
        -c 'SET atoll.shared_scan = on' \
        -c "SELECT 'found', count(*), sum(a) FROM t WHERE b BETWEEN 1000000 AND 1900000" \
        -c "SELECT 'found', count(*), sum(a) FROM t WHERE b = 7368787" \
        -c "SELECT 'found', count(*), sum(a) FROM t WHERE b BETWEEN 2000000 AND 2900000" \
        -c "SELECT 'scans', queries FROM atoll.scans" |
        sed "s/^/$placement,/"
done
