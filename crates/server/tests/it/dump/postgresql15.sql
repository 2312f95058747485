--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: stock; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA stock;


ALTER SCHEMA stock OWNER TO postgres;

--
-- Name: SCHEMA stock; Type: COMMENT; Schema: -; Owner: postgres
--

COMMENT ON SCHEMA stock IS 'what is there';


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: Mixed Case; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public."Mixed Case" (
    "Key" integer NOT NULL,
    "Val" jsonb
);


ALTER TABLE public."Mixed Case" OWNER TO postgres;

--
-- Name: customer; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.customer (
    id integer NOT NULL,
    name character varying(40) NOT NULL,
    email text,
    born date,
    credit numeric(10,2) DEFAULT 0,
    active boolean DEFAULT true,
    created timestamp without time zone DEFAULT CURRENT_TIMESTAMP
);


ALTER TABLE public.customer OWNER TO postgres;

--
-- Name: TABLE customer; Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON TABLE public.customer IS 'who buys';


--
-- Name: COLUMN customer.name; Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON COLUMN public.customer.name IS 'full name';


--
-- Name: orders; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.orders (
    id bigint NOT NULL,
    customer_id integer NOT NULL,
    placed timestamp with time zone DEFAULT now(),
    note text DEFAULT 'it''s'::text,
    CONSTRAINT note_short CHECK ((length(note) < 100))
);


ALTER TABLE public.orders OWNER TO postgres;

--
-- Name: big; Type: VIEW; Schema: public; Owner: postgres
--

CREATE VIEW public.big AS
 SELECT c.name,
    count(*) AS n
   FROM (public.customer c
     JOIN public.orders o ON ((o.customer_id = c.id)))
  GROUP BY c.name;


ALTER TABLE public.big OWNER TO postgres;

--
-- Name: VIEW big; Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON VIEW public.big IS 'a view';


--
-- Name: customer_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.customer_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.customer_id_seq OWNER TO postgres;

--
-- Name: customer_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.customer_id_seq OWNED BY public.customer.id;


--
-- Name: empty_one; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.empty_one (
    a integer
);


ALTER TABLE public.empty_one OWNER TO postgres;

--
-- Name: line; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.line (
    order_id bigint NOT NULL,
    pos integer NOT NULL,
    item text NOT NULL,
    n integer,
    price double precision,
    CONSTRAINT line_n_check CHECK ((n > 0))
);


ALTER TABLE public.line OWNER TO postgres;

--
-- Name: no_key; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.no_key (
    a integer,
    b text
);


ALTER TABLE public.no_key OWNER TO postgres;

--
-- Name: orders_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

ALTER TABLE public.orders ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.orders_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: plain; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.plain
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.plain OWNER TO postgres;

--
-- Name: SEQUENCE plain; Type: COMMENT; Schema: public; Owner: postgres
--

COMMENT ON SEQUENCE public.plain IS 'a sequence';


--
-- Name: self; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.self (
    id integer NOT NULL,
    parent integer
);


ALTER TABLE public.self OWNER TO postgres;

--
-- Name: number; Type: SEQUENCE; Schema: stock; Owner: postgres
--

CREATE SEQUENCE stock.number
    START WITH 100
    INCREMENT BY 10
    MINVALUE 100
    MAXVALUE 100000
    CACHE 1
    CYCLE;


ALTER TABLE stock.number OWNER TO postgres;

--
-- Name: item; Type: TABLE; Schema: stock; Owner: postgres
--

CREATE TABLE stock.item (
    id bigint DEFAULT nextval('stock.number'::regclass) NOT NULL,
    code character(4),
    ean bigint,
    weight real,
    tags text[],
    data json,
    raw bytea,
    uid uuid
);


ALTER TABLE stock.item OWNER TO postgres;

--
-- Name: move; Type: TABLE; Schema: stock; Owner: postgres
--

CREATE TABLE stock.move (
    id integer NOT NULL,
    item bigint,
    amount integer,
    doubled integer GENERATED ALWAYS AS ((amount * 2)) STORED
);


ALTER TABLE stock.move OWNER TO postgres;

--
-- Name: move_id_seq; Type: SEQUENCE; Schema: stock; Owner: postgres
--

ALTER TABLE stock.move ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME stock.move_id_seq
    START WITH 7
    INCREMENT BY 2
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: over_big; Type: VIEW; Schema: stock; Owner: postgres
--

CREATE VIEW stock.over_big AS
 SELECT big.name,
    big.n
   FROM public.big
  WHERE (big.n > 0);


ALTER TABLE stock.over_big OWNER TO postgres;

--
-- Name: place; Type: TABLE; Schema: stock; Owner: postgres
--

CREATE TABLE stock.place (
    id smallint NOT NULL,
    shelf smallint,
    "Weird Name" text,
    "select" integer DEFAULT 5,
    t time without time zone,
    i interval
);


ALTER TABLE stock.place OWNER TO postgres;

--
-- Name: place_id_seq; Type: SEQUENCE; Schema: stock; Owner: postgres
--

CREATE SEQUENCE stock.place_id_seq
    AS smallint
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE stock.place_id_seq OWNER TO postgres;

--
-- Name: place_id_seq; Type: SEQUENCE OWNED BY; Schema: stock; Owner: postgres
--

ALTER SEQUENCE stock.place_id_seq OWNED BY stock.place.id;


--
-- Name: customer id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.customer ALTER COLUMN id SET DEFAULT nextval('public.customer_id_seq'::regclass);


--
-- Name: place id; Type: DEFAULT; Schema: stock; Owner: postgres
--

ALTER TABLE ONLY stock.place ALTER COLUMN id SET DEFAULT nextval('stock.place_id_seq'::regclass);


--
-- Data for Name: Mixed Case; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public."Mixed Case" ("Key", "Val") FROM stdin;
1	{"b": [1, 2]}
\.


--
-- Data for Name: customer; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.customer (id, name, email, born, credit, active, created) FROM stdin;
1	Ann	a@x	1990-01-02	12.50	t	2024-05-06 07:08:09
2	Bob	\N	\N	-3.25	t	\N
3	T\tab\\ "x"	nl\n	2000-02-29	0.00	t	2024-05-06 07:08:09.5
\.


--
-- Data for Name: empty_one; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.empty_one (a) FROM stdin;
\.


--
-- Data for Name: line; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.line (order_id, pos, item, n, price) FROM stdin;
1	1	nut	5	1.5
1	2	bolt	6	0.1
2	1	nut	1	1e+300
\.


--
-- Data for Name: no_key; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.no_key (a, b) FROM stdin;
1	x
\N	\N
1	x
\.


--
-- Data for Name: orders; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.orders (id, customer_id, placed, note) FROM stdin;
1	1	2024-01-01 10:00:00+00	x
2	2	2024-06-01 08:00:00.123456+00	\N
\.


--
-- Data for Name: self; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.self (id, parent) FROM stdin;
1	\N
2	1
\.


--
-- Data for Name: item; Type: TABLE DATA; Schema: stock; Owner: postgres
--

COPY stock.item (id, code, ean, weight, tags, data, raw, uid) FROM stdin;
100	abcd	5	1.5	{a,"b,c"}	{"a": 1}	\\x00ff	123e4567-e89b-12d3-a456-426614174000
110	\N	\N	\N	\N	\N	\N	\N
\.


--
-- Data for Name: move; Type: TABLE DATA; Schema: stock; Owner: postgres
--

COPY stock.move (id, item, amount) FROM stdin;
7	100	5
9	110	6
\.


--
-- Data for Name: place; Type: TABLE DATA; Schema: stock; Owner: postgres
--

COPY stock.place (id, shelf, "Weird Name", "select", t, i) FROM stdin;
1	1	x	5	10:00:01	1 day 02:00:00
\.


--
-- Name: customer_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.customer_id_seq', 3, true);


--
-- Name: orders_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.orders_id_seq', 2, true);


--
-- Name: plain; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.plain', 2, true);


--
-- Name: move_id_seq; Type: SEQUENCE SET; Schema: stock; Owner: postgres
--

SELECT pg_catalog.setval('stock.move_id_seq', 9, true);


--
-- Name: number; Type: SEQUENCE SET; Schema: stock; Owner: postgres
--

SELECT pg_catalog.setval('stock.number', 110, true);


--
-- Name: place_id_seq; Type: SEQUENCE SET; Schema: stock; Owner: postgres
--

SELECT pg_catalog.setval('stock.place_id_seq', 1, true);


--
-- Name: Mixed Case Mixed Case_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."Mixed Case"
    ADD CONSTRAINT "Mixed Case_pkey" PRIMARY KEY ("Key");


--
-- Name: customer customer_email_key; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.customer
    ADD CONSTRAINT customer_email_key UNIQUE (email);


--
-- Name: customer customer_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.customer
    ADD CONSTRAINT customer_pkey PRIMARY KEY (id);


--
-- Name: line line_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.line
    ADD CONSTRAINT line_pkey PRIMARY KEY (order_id, pos);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


--
-- Name: self self_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.self
    ADD CONSTRAINT self_pkey PRIMARY KEY (id);


--
-- Name: item item_code_ean_key; Type: CONSTRAINT; Schema: stock; Owner: postgres
--

ALTER TABLE ONLY stock.item
    ADD CONSTRAINT item_code_ean_key UNIQUE (code, ean);


--
-- Name: item item_pkey; Type: CONSTRAINT; Schema: stock; Owner: postgres
--

ALTER TABLE ONLY stock.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);


--
-- Name: place place_select_key; Type: CONSTRAINT; Schema: stock; Owner: postgres
--

ALTER TABLE ONLY stock.place
    ADD CONSTRAINT place_select_key UNIQUE ("select");


--
-- Name: customer_name; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX customer_name ON public.customer USING btree (name);


--
-- Name: line_item; Type: INDEX; Schema: public; Owner: postgres
--

CREATE UNIQUE INDEX line_item ON public.line USING btree (order_id, item);


--
-- Name: no_key_desc; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX no_key_desc ON public.no_key USING btree (b DESC, a);


--
-- Name: line line_order_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.line
    ADD CONSTRAINT line_order_id_fkey FOREIGN KEY (order_id) REFERENCES public.orders(id) ON UPDATE CASCADE;


--
-- Name: orders orders_customer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customer(id) ON DELETE CASCADE;


--
-- Name: self self_parent_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.self
    ADD CONSTRAINT self_parent_fkey FOREIGN KEY (parent) REFERENCES public.self(id);


--
-- Name: move move_item_fkey; Type: FK CONSTRAINT; Schema: stock; Owner: postgres
--

ALTER TABLE ONLY stock.move
    ADD CONSTRAINT move_item_fkey FOREIGN KEY (item) REFERENCES stock.item(id);


--
-- PostgreSQL database dump complete
--


