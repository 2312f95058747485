select *, {{ dbt.datediff("date '2024-01-01'", "date '2024-03-01'", 'day') }} as days,
  {{ dbt.dateadd('month', 1, "date '2024-01-31'") }} as later, {{ dbt.hash('customer_id') }} as key,
  {{ dbt.split_part("'a-b'", "'-'", 2) }} as part, {{ dbt.safe_cast("'1'", api.Column.translate_type('integer')) }} as one,
  {{ dbt.last_day("date '2024-02-03'", 'month') }} as last_day
from {{ ref('passing') }}
