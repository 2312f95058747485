-- Queries that sort, rank, frame and group. Each has a name, and its rows come in one order in every engine.
-- {last} is the number of rows without the last ten.

-- sort by string
SELECT name, id FROM events ORDER BY name, id OFFSET {last};

-- sort by string, whole rows
SELECT * FROM events ORDER BY name, id OFFSET {last};

-- sort by string, descending, nulls first
SELECT name, id FROM events ORDER BY CASE WHEN ok THEN name END DESC NULLS FIRST, id OFFSET {last};

-- sort by integer, whole rows
SELECT * FROM events ORDER BY user_id, id OFFSET {last};

-- sort by time
SELECT id, ts FROM events ORDER BY ts, id OFFSET {last};

-- sort by decimal and float
SELECT id FROM events ORDER BY price DESC, amount, id OFFSET {last};

-- sort by four keys
SELECT id FROM events ORDER BY country, ok DESC, score NULLS FIRST, id OFFSET {last};

-- sort of sorted rows
SELECT id, name FROM events ORDER BY id OFFSET {last};

-- top 10 by string
SELECT name, id FROM events ORDER BY name DESC, id LIMIT 10;

-- top 10 by string, whole rows
SELECT * FROM events ORDER BY name DESC, id LIMIT 10;

-- top 10 by integer
SELECT id, score FROM events ORDER BY score DESC NULLS LAST, id LIMIT 10;

-- top 10 by decimal, whole rows
SELECT * FROM events ORDER BY price, id LIMIT 10;

-- top 10,000 by time
SELECT CAST(sum(id) AS BIGINT) FROM (SELECT id FROM events ORDER BY ts DESC, id LIMIT 10000) AS t;

-- top 10 of a filter
SELECT id, name FROM events WHERE ok AND price > 5000 ORDER BY name, id LIMIT 10;

-- row_number by string
SELECT CAST(sum(r * (id % 97)) AS BIGINT) FROM (SELECT id, row_number() OVER (ORDER BY name, id) AS r FROM events) AS t;

-- first event of each user
SELECT CAST(sum(id) AS BIGINT) FROM
  (SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY ts, id) AS r FROM events) AS t WHERE r = 1;

-- last 3 events of each user
SELECT CAST(sum(id) AS BIGINT) FROM (SELECT id FROM events
  QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY ts DESC, id) <= 3) AS t;

-- best 3 of each country, with ties
SELECT count(*), CAST(sum(id) AS BIGINT) FROM
  (SELECT id, rank() OVER (PARTITION BY country ORDER BY price DESC) AS r FROM events) AS t WHERE r <= 3;

-- distinct on
SELECT CAST(sum(id) AS BIGINT) FROM
  (SELECT DISTINCT ON (user_id) user_id, id FROM events ORDER BY user_id, ts DESC, id) AS t;

-- rank and dense_rank in countries
SELECT CAST(sum(r) AS BIGINT), CAST(sum(d) AS BIGINT) FROM
  (SELECT rank() OVER w AS r, dense_rank() OVER w AS d FROM events
   WINDOW w AS (PARTITION BY country ORDER BY score)) AS t;

-- ntile and percent_rank of all rows
SELECT CAST(sum(n) AS BIGINT), round(sum(p), 3) FROM
  (SELECT ntile(100) OVER (ORDER BY price, id) AS n, percent_rank() OVER (ORDER BY price) AS p FROM events) AS t;

-- lag and lead in users
SELECT CAST(sum(a) AS BIGINT), CAST(sum(b) AS BIGINT) FROM
  (SELECT lag(score) OVER w AS a, lead(score, 3, 0) OVER w AS b FROM events
   WINDOW w AS (PARTITION BY user_id ORDER BY ts, id)) AS t;

-- lag and running sum in countries
SELECT CAST(sum(score - p) AS BIGINT), CAST(max(s) AS BIGINT) FROM
  (SELECT score, lag(score) OVER w AS p, sum(quantity) OVER w AS s FROM events
   WINDOW w AS (PARTITION BY country ORDER BY ts, id)) AS t;

-- running sum of all rows
SELECT CAST(sum(s % 1000) AS BIGINT) FROM
  (SELECT sum(quantity) OVER (ORDER BY ts, id) AS s FROM events) AS t;

-- sum of a country beside each row
SELECT CAST(sum(s % 1000) AS BIGINT) FROM
  (SELECT sum(score) OVER (PARTITION BY country) AS s FROM events) AS t;

-- count of a user beside each row
SELECT CAST(sum(n) AS BIGINT), max(n) FROM (SELECT count(*) OVER (PARTITION BY user_id) AS n FROM events) AS t;

-- maximum of all beside each row
SELECT CAST(sum(m - score) AS BIGINT) FROM (SELECT score, max(score) OVER () AS m FROM events) AS t;

-- partitions of one row
SELECT CAST(sum(r) AS BIGINT), CAST(sum(s) AS BIGINT) FROM
  (SELECT row_number() OVER w AS r, sum(quantity) OVER w AS s FROM events
   WINDOW w AS (PARTITION BY id ORDER BY ts)) AS t;

-- minimum over 100 rows
SELECT CAST(sum(m) AS BIGINT) FROM
  (SELECT min(score) OVER (PARTITION BY country ORDER BY ts, id ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS m
   FROM events) AS t;

-- average of decimals over 7 rows
SELECT round(sum(a), 1) FROM
  (SELECT CAST(avg(price) OVER (PARTITION BY user_id ORDER BY ts, id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING)
    AS DOUBLE) AS a FROM events) AS t;

-- count within an hour
SELECT CAST(sum(n) AS BIGINT), max(n) FROM
  (SELECT count(*) OVER (PARTITION BY country ORDER BY ts
    RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW) AS n FROM events) AS t;

-- first and last string of a user
SELECT CAST(sum(length(f)) AS BIGINT), CAST(sum(length(l)) AS BIGINT) FROM
  (SELECT first_value(name) OVER w AS f, last_value(name) OVER w AS l FROM events
   WINDOW w AS (PARTITION BY user_id ORDER BY ts, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS t;

-- maximum of strings so far
SELECT CAST(sum(length(m)) AS BIGINT) FROM
  (SELECT max(name) OVER (PARTITION BY country ORDER BY ts, id) AS m FROM events) AS t;

-- windows of three orders
SELECT CAST(sum(a) AS BIGINT), CAST(sum(b) AS BIGINT), CAST(sum(c) AS BIGINT) FROM
  (SELECT row_number() OVER (PARTITION BY country ORDER BY ts, id) AS a,
    rank() OVER (PARTITION BY user_id ORDER BY price) AS b,
    row_number() OVER (ORDER BY amount, id) % 7 AS c FROM events) AS t;

-- ten windows of one order
SELECT CAST(sum(a + b + c) AS BIGINT), CAST(sum(d + e + f) AS BIGINT), CAST(sum(g + h + i + j) AS BIGINT) FROM
  (SELECT row_number() OVER w AS a, rank() OVER w AS b, dense_rank() OVER w AS c, count(*) OVER w AS d,
    count(score) OVER w AS e, min(quantity) OVER w AS f, max(quantity) OVER w AS g, sum(quantity) OVER w AS h,
    first_value(quantity) OVER w AS i, last_value(quantity) OVER w AS j FROM events
   WINDOW w AS (PARTITION BY user_id ORDER BY ts, id)) AS t;

-- rollup
SELECT country, ok, day, count(*), sum(price) FROM events GROUP BY ROLLUP (country, ok, day)
ORDER BY country NULLS LAST, ok NULLS LAST, day NULLS LAST LIMIT 10;

-- cube
SELECT country, ok, quantity, count(*), CAST(sum(score) AS BIGINT) FROM events GROUP BY CUBE (country, ok, quantity)
ORDER BY country NULLS LAST, ok NULLS LAST, quantity NULLS LAST LIMIT 10;

-- grouping sets
SELECT country, day, count(*), max(amount) FROM events GROUP BY GROUPING SETS ((country), (day), ())
ORDER BY country NULLS LAST, day NULLS LAST LIMIT 10;

-- median by country
SELECT country, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM events GROUP BY country ORDER BY country;

-- median of all
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), percentile_cont(0.9) WITHIN GROUP (ORDER BY quantity)
FROM events;

-- median by user
SELECT round(sum(m), 3) FROM
  (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS m FROM events GROUP BY user_id) AS t;

-- smallest and largest string by country
SELECT country, min(name), max(name) FROM events GROUP BY country ORDER BY country;

-- distinct and filtered by country
SELECT country, count(DISTINCT user_id), count(DISTINCT day), count(*) FILTER (WHERE ok), CAST(sum(score) FILTER (WHERE NOT ok) AS BIGINT)
FROM events GROUP BY country ORDER BY country;

-- averages and deviations by day
SELECT day, round(avg(amount), 6), round(stddev(amount), 6), CAST(round(avg(price), 4) AS DOUBLE) FROM events GROUP BY day ORDER BY day;

-- sum of products
SELECT sum(price * quantity), CAST(sum(score * quantity) AS BIGINT) FROM events;

-- months
SELECT date_trunc('month', ts) AS month, count(*), sum(price) FROM events GROUP BY date_trunc('month', ts) ORDER BY month;

-- strings of a user in order
SELECT CAST(sum(length(s)) AS BIGINT) FROM
  (SELECT string_agg(country, ',' ORDER BY ts, id) AS s FROM events GROUP BY user_id) AS t;
