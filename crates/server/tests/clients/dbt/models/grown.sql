{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns') }}
select id, customer_id, amount, ordered, now() as seen from {{ ref('recent') }}
{% if is_incremental() %} where ordered >= (select max(ordered) from {{ this }}) {% endif %}
