{{ config(materialized='materialized_view', indexes=[{'columns': ['month'], 'unique': True}]) }}
select date_trunc('month', ordered)::date as month, sum(amount) as total from {{ ref('orders') }} group by 1
