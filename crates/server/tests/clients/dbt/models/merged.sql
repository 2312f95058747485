{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, amount + {% if is_incremental() %}1{% else %}0{% endif %} as amount from {{ ref('recent') }}
