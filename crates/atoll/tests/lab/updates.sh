# updates.sh: a thousand statements change rows here and there in a table of eight chunks on four nodes, together every
# row once; then what the kernel says of its pages, and what is in it.
{
    echo "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT);"
    echo "INSERT INTO t SELECT value, value AS same FROM generate_series(0, 1047999);"
    number=0
    while [ $number -lt 1000 ]; do
        # 617 and 1000 have no divisor in common, so each number comes once.
        first=$((number * 617 % 1000 * 1048))
        echo "UPDATE t SET b = b + 1 WHERE a >= $first AND a < $((first + 1048));"
        number=$((number + 1))
    done
    echo "SELECT 'sum', count(*) AS n, sum(b - a) AS changed FROM t;"
    echo "SELECT 'home', found_node, sum(pages) FROM atoll.pages WHERE \"table\" = 't' GROUP BY found_node;"
    echo "SELECT 'pages', sum(CASE WHEN found_node = wanted_node THEN pages ELSE 0 END), sum(pages)
          FROM atoll.pages WHERE \"table\" = 't' AND found_node IS NOT NULL;"
} | "$ATOLL" sql --placement aligned --mode csv | sed "s/^/aligned,/"
