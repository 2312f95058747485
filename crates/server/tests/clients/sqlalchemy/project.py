"""SQLAlchemy's ORM over psycopg, psycopg2, pg8000 and asyncpg: tables, relationships, queries, upserts, transactions, reflection."""

import asyncio
import datetime
import decimal
import enum
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, joinedload, mapped_column, relationship, selectinload, subqueryload


class Mood(enum.Enum):
    glad = 1
    sad = 2


class Base(DeclarativeBase):
    pass


tags = sa.Table("book_tag", Base.metadata, sa.Column("book_id", sa.ForeignKey("book.id", ondelete="CASCADE"), primary_key=True),
                sa.Column("tag", sa.ForeignKey("tag.name"), primary_key=True))


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), unique=True, comment="in full")
    mood: Mapped[Mood] = mapped_column(default=Mood.glad)
    parent_id: Mapped[int | None] = mapped_column(sa.ForeignKey("author.id"))
    kind: Mapped[str] = mapped_column(default="author")
    version: Mapped[int] = mapped_column(default=1)
    books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan", order_by="Book.id")
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "author", "version_id_col": version}


class Poet(Author):
    __tablename__ = "poet"
    id: Mapped[int] = mapped_column(sa.ForeignKey("author.id"), primary_key=True)
    metre: Mapped[str]
    __mapper_args__ = {"polymorphic_identity": "poet"}


class Book(Base):
    __tablename__ = "book"
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id"), index=True)
    price: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(9, 2), server_default="0")
    pages: Mapped[int] = mapped_column(sa.CheckConstraint("pages > 0", name="pages_positive"))
    total: Mapped[decimal.Decimal] = mapped_column(sa.Computed("price * pages"))
    data: Mapped[dict] = mapped_column(pg.JSONB, default=dict)
    words: Mapped[list[str]] = mapped_column(pg.ARRAY(sa.Text), default=list)
    made: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    day: Mapped[datetime.date | None]
    lent: Mapped[datetime.timedelta | None]
    cover: Mapped[bytes | None]
    moods: Mapped[list[Mood] | None] = mapped_column(pg.ARRAY(sa.Enum(Mood)))
    author: Mapped[Author] = relationship(back_populates="books")
    tags: Mapped[list["Tag"]] = relationship(secondary=tags)
    __table_args__ = (sa.Index("long_books", "pages", postgresql_where=sa.text("pages > 105")),
                      sa.UniqueConstraint("title", "author_id", name="title_author", deferrable=True, initially="DEFERRED"))


class Tag(Base):
    __tablename__ = "tag"
    name: Mapped[str] = mapped_column(primary_key=True)


def check(driver):
    engine = sa.create_engine(url(f"postgresql+{driver}"))

    def named(function):
        function.__name__ = f"{driver} {function.__name__}"
        step(function)

    @named
    def create():
        Base.metadata.create_all(engine)
        Base.metadata.create_all(engine)

    @named
    def insert():
        with Session(engine) as s, s.begin():
            both = [Author(name="Ann"), Poet(name="Bob", mood=Mood.sad, metre="iamb")]
            labels = [Tag(name="new"), Tag(name="old")]
            for i in range(10):
                both[i % 2].books.append(Book(
                    title=f"b{i}", price=decimal.Decimal(i) / 4, pages=100 + i, data={"n": i, "deep": {"list": [i]}}, words=["x", str(i)],
                    day=datetime.date(2024, 1, 2), lent=datetime.timedelta(days=i, seconds=3), cover=b"\0\xff", tags=[labels[i % 2]], moods=[Mood.sad]))
            s.add_all([*both, *labels])
        with Session(engine) as s:
            b = s.scalars(sa.select(Book).filter_by(title="b3")).one()
            equal((b.author.name, b.price, b.total, b.data["deep"], b.words, b.lent.days, b.cover, b.tags[0].name, b.moods),
                  ("Bob", decimal.Decimal("0.75"), decimal.Decimal("77.25"), {"list": [3]}, ["x", "3"], 3, b"\0\xff", "old", [Mood.sad]))

    @named
    def queries():
        with Session(engine) as s:
            equal([len(a.books) for a in s.scalars(sa.select(Author).options(selectinload(Author.books)).order_by(Author.name))], [5, 5])
            equal(len(s.scalars(sa.select(Author).options(joinedload(Author.books).subqueryload(Book.tags))).unique().all()), 2)
            equal(s.execute(sa.select(Author.name, sa.func.sum(Book.pages)).join(Author.books).group_by(Author.name).having(sa.func.count() > 1)
                            .order_by(Author.name)).all(), [("Ann", 520), ("Bob", 525)])
            equal(s.scalar(sa.select(sa.func.count()).where(Book.data["n"].as_integer() > 6)), 3)
            equal(s.scalar(sa.select(sa.func.count()).where(Book.data["deep"]["list"][0].astext == "4")), 1)
            equal(s.scalar(sa.select(sa.func.count()).where(Book.data.contains({"n": 5}))), 1)
            equal(s.scalar(sa.select(sa.func.count()).where(Book.words.contains(["x"]), Book.words.any("2"), Book.words[2] == "2")), 1)
            ranked = sa.select(Book.title, sa.func.row_number().over(partition_by=Book.author_id, order_by=Book.pages.desc()).label("r")).subquery()
            equal(sorted(s.scalars(sa.select(ranked.c.title).where(ranked.c.r == 1))), ["b8", "b9"])
            tree = sa.select(sa.literal(1).label("n")).cte("tree", recursive=True)
            tree = tree.union_all(sa.select(tree.c.n + 1).where(tree.c.n < 4))
            equal(s.scalar(sa.select(sa.func.sum(tree.c.n))), 10)
            other = aliased(Book)
            equal(s.scalar(sa.select(sa.func.count()).select_from(Book).join(other, sa.and_(other.pages == Book.pages + 1, other.author_id != Book.author_id))), 9)
            lateral = sa.select(Book.title).where(Book.author_id == Author.id).order_by(Book.pages).limit(1).lateral()
            equal(s.execute(sa.select(Author.name, lateral.c.title).join(lateral, sa.true()).order_by(Author.name)).all(), [("Ann", "b0"), ("Bob", "b1")])
            equal(s.scalar(sa.select(sa.func.string_agg(Book.title, pg.aggregate_order_by(sa.literal(","), Book.title.desc()))).where(Book.pages > 107)), "b9,b8")
            equal(s.scalar(sa.select(sa.func.array_agg(Book.pages.distinct())).where(Book.pages < 102)), [100, 101])
            equal(s.scalars(sa.select(Book.title).distinct(Book.author_id).order_by(Book.author_id, Book.pages)).all(), ["b0", "b1"])
            equal(s.scalars(sa.select(Author).where(Author.books.any(Book.title.ilike("B3")))).one().metre, "iamb")
            equal(s.scalar(sa.select(sa.extract("day", Book.made - sa.func.now())).limit(1)), 0)
            equal(len(s.scalars(sa.select(Book).where(sa.tuple_(Book.title, Book.pages).in_([("b1", 101), ("b2", 1)]))).all()), 1)
            equal(s.scalars(sa.select(Book).where(Book.moods.any(Mood.sad))).first().moods, [Mood.sad])

    @named
    def change():
        with Session(engine) as s, s.begin():
            q = pg.insert(Author).values([{"name": "Ann"}, {"name": "Cy"}])
            q = q.on_conflict_do_update(index_elements=["name"], set_={"version": Author.version, "mood": Mood.sad}).returning(Author.name, Author.mood)
            equal(s.execute(q).all(), [("Ann", Mood.sad), ("Cy", Mood.glad)])
            s.execute(pg.insert(Tag).on_conflict_do_nothing(), [{"name": "new"}, {"name": "rare"}])
            equal(s.execute(sa.update(Book).where(Book.pages > 107).values(price=Book.price * 2).returning(Book.price)).scalars().all().__len__(), 2)
            b = s.scalars(sa.select(Book).where(Book.title == "b9").with_for_update(of=Book, skip_locked=True)).one()
            s.delete(b)
            s.flush()
            a = s.scalars(sa.select(Author).where(Author.name == "Bob")).one()
            a.name = "Rob"
            s.flush()
            equal(a.version, 2)
            s.execute(sa.delete(Author).where(Author.name == "Cy"))

    @named
    def transactions():
        with Session(engine) as s:
            s.add(Tag(name="gone"))
            s.flush()
            try:
                with s.begin_nested():
                    s.add(Book(title="w", author_id=1, pages=0))
                    s.flush()
            except sa.exc.DBAPIError as e: # pg8000 knows no finer class
                assert "pages_positive" in str(e)
            s.rollback()
            equal(s.scalar(sa.select(sa.func.count()).select_from(Tag)), 3)
            one = s.scalars(sa.select(Book).where(Book.title == "b0")).one()
            two = s.scalars(sa.select(Book).where(Book.title == "b2")).one()
            one.title, two.title = two.title, one.title
            s.commit()
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as c:
            equal(c.get_isolation_level(), "REPEATABLE READ")
            c.execute(sa.text("SELECT 1"))
        with engine.connect().execution_options(stream_results=True, yield_per=3) as c:
            equal(sum(1 for _ in c.execute(sa.select(Book.id))), 9)

    @named
    def reflect():
        m = sa.MetaData()
        m.reflect(engine)
        equal(set(m.tables), {"author", "poet", "book", "tag", "book_tag"})
        t = m.tables["book"].c
        equal((str(t.price.type), str(t.words.type.item_type), str(t.made.type), str(t.lent.type), str(t.data.type), t.total.computed is not None, t.moods.type.item_type.enums),
              ("NUMERIC(9, 2)", "TEXT", "TIMESTAMP", "INTERVAL", "JSONB", True, ["glad", "sad"]))
        equal((str(m.tables["author"].c.name.type), m.tables["author"].c.name.comment), ("VARCHAR(40)", "in full"))
        i = sa.inspect(engine)
        equal([x["name"] for x in i.get_indexes("book") if not x.get("duplicates_constraint")], ["ix_book_author_id", "long_books"])
        equal(i.get_unique_constraints("book")[0]["name"], "title_author")
        equal([x["sqltext"] for x in i.get_check_constraints("book")], ["pages > 0"])
        base = automap_base(metadata=m)
        base.prepare()
        with Session(engine) as s:
            equal(len(s.scalars(sa.select(base.classes.book)).first().author.book_collection), 5)

    @named
    def drop():
        Base.metadata.drop_all(engine)
        equal(sa.inspect(engine).get_table_names(), [])
        engine.dispose()


for driver in ("psycopg", "psycopg2", "pg8000"):
    check(driver)


@step
def asyncpg():
    async def run():
        engine = create_async_engine(url("postgresql+asyncpg"))
        async with engine.begin() as c:
            await c.run_sync(Base.metadata.create_all)
        async with AsyncSession(engine) as s, s.begin():
            s.add(Author(name="Ann", books=[Book(title="b", pages=1, words=["x"], data={"n": 1}, moods=[Mood.glad])]))
        async with AsyncSession(engine) as s:
            a = (await s.scalars(sa.select(Author).options(selectinload(Author.books)))).one()
            equal((a.books[0].words, a.books[0].data, a.books[0].moods), (["x"], {"n": 1}, [Mood.glad]))
        async with engine.begin() as c:
            await c.run_sync(Base.metadata.drop_all)
        await engine.dispose()

    asyncio.run(run())
