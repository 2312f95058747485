{{ config(materialized='table', indexes=[{'columns': ['customer_id'], 'unique': True}, {'columns': ['total', 'n'], 'type': 'btree'}]) }}
select c.id as customer_id, c.name, count(*) as n, sum(o.amount) as total
from {{ ref('customers') }} c join {{ ref('recent') }} o on o.customer_id = c.id group by 1, 2
