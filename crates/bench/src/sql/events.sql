CREATE TABLE events AS
SELECT id,
  x % 200000 AS user_id,
  TIMESTAMP '2024-01-01 00:00:00' + (y % 31536000) * INTERVAL '1 second' AS ts,
  DATE '2024-01-01' + CAST(y % 365 AS INTEGER) AS day,
  'country ' || CAST((x % 7919) % 61 AS VARCHAR) AS country,
  CASE WHEN y % 7 = 0 THEN '' ELSE substr(md5(CAST(id AS VARCHAR)), 1, CAST(1 + y % 32 AS INTEGER)) || CASE WHEN y % 11 = 0 THEN ' and a long end of the name' ELSE '' END END AS name,
  CAST(CAST(y % 1000000 AS DECIMAL(12,2)) * 0.01 AS DECIMAL(12,2)) AS price,
  CAST(1 + x % 50 AS INTEGER) AS quantity,
  CAST(y % 1000003 AS DOUBLE) / 7 AS amount,
  CASE WHEN x % 10 = 0 THEN NULL ELSE y % 1000 END AS score,
  x % 3 = 0 AS ok
FROM (SELECT id, x, (x * 1103515245 + 12345) % 2147483648 AS y
  FROM (SELECT i AS id, (i * 2654435761) % 4294967291 AS x FROM generate_series(0, {last_id}) AS t(i)) AS g) AS h;
