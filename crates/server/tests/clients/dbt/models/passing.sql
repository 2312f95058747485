{{ config(materialized='ephemeral') }}
select customer_id, {{ dbt_pivot('customer_id') }} from {{ ref('recent') }} group by 1
