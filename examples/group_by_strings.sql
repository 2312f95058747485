-- GROUP BY, DISTINCT and COUNT(DISTINCT) with strings as keys, over 8 million rows each:
--   atoll sql -f examples/group_by_strings.sql
-- DuckDB reads the same file: duckdb < examples/group_by_strings.sql
CREATE TABLE long AS SELECT 'a customer with the number ' || lpad((i * 7919 % 8388593 * 104729 % 131072)::VARCHAR, 9, '0') AS k, i % 100 AS v FROM range(8388608) AS r(i);
CREATE TABLE sessions AS SELECT md5((i * 7919 % 8388593 * 104729 % 2400000)::VARCHAR) AS k FROM range(8388608) AS r(i);
CREATE TABLE two AS SELECT 'user-' || lpad((i * 7919 % 8388593 * 104729 % 500000)::VARCHAR, 9, '0') AS k, CASE i * 31 % 4 WHEN 0 THEN 'DE' WHEN 1 THEN 'FR' WHEN 2 THEN 'US' ELSE 'GB' END AS c FROM range(8388608) AS r(i);
CREATE TABLE few AS SELECT 'a customer with the number ' || lpad((i * 7919 % 8388593 * 104729 % 1000)::VARCHAR, 9, '0') AS k, i % 100 AS v FROM range(8388608) AS r(i);
.timer on
-- 131,072 strings
SELECT count(*), sum(s) FROM (SELECT k, sum(v) AS s FROM long GROUP BY k);
SELECT count(DISTINCT k) FROM long;
-- 2.4 million strings
SELECT count(*), sum(s) FROM (SELECT k, count(*) AS s FROM sessions GROUP BY k);
SELECT count(DISTINCT k) FROM sessions;
-- two columns, 2 million pairs
SELECT count(*) FROM (SELECT DISTINCT k, c FROM two);
-- 1,000 strings, which chunks keep in dictionaries
SELECT count(*), sum(s) FROM (SELECT k, sum(v) AS s FROM few GROUP BY k);
