{{ config(store_failures=true) }}
select * from {{ ref('totals') }} where total < 0
