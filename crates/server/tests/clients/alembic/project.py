"""Alembic: revisions it finds by itself, in both directions, and the ones that people write with its operations."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import sqlalchemy as sa
from alembic import autogenerate, command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects import postgresql as pg

engine = sa.create_engine(url("postgresql+psycopg"))
home = pathlib.Path(tempfile.mkdtemp())
config = Config()
config.set_main_option("script_location", str(home / "alembic"))


def models(version):
    """The tables as they are before the first change and after it."""
    m = sa.MetaData(naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s", "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s", "pk": "pk_%(table_name)s"})
    sa.Table("author", m, sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
             sa.Column("name", sa.String(40 if version == 1 else 60), nullable=False, comment="in full"),
             sa.Column("mood", sa.Enum("glad", "sad", name="mood"), server_default="glad"))
    columns = [sa.Column("id", sa.Integer, primary_key=True),
               sa.Column("title", sa.Text, index=True, nullable=False),
               sa.Column("author_id", sa.ForeignKey("author.id", ondelete="CASCADE")),
               sa.Column("price", sa.Numeric(9, 2), server_default="0"),
               sa.Column("made", sa.DateTime(timezone=True), server_default=sa.func.now()),
               sa.Column("uid", pg.UUID, unique=True), sa.Column("data", pg.JSONB), sa.Column("words", pg.ARRAY(sa.String(10)))]
    if version == 2:
        columns += [sa.Column("pages", sa.Integer, sa.CheckConstraint("pages > 0", name="pages"), server_default="1", nullable=False),
                    sa.Column("total", sa.Numeric(12, 2), sa.Computed("price * pages", persisted=True))]
        columns[3].nullable = False
        sa.Table("shelf", m, sa.Column("id", sa.SmallInteger, primary_key=True), sa.Column("d", sa.Double),
                 sa.Column("t", sa.Time), sa.Column("b", sa.LargeBinary), comment="where books are")
    book = sa.Table("book", m, *columns)
    if version == 2:
        sa.Index("book_pages", book.c.pages.desc(), postgresql_where=book.c.pages > 10)
        sa.Index("book_title", sa.func.lower(book.c.title))
        sa.Index("book_data", book.c.data, postgresql_using="gin")
    return m


def env(metadata):
    (home / "alembic").mkdir(exist_ok=True)
    (home / "alembic" / "versions").mkdir(exist_ok=True)
    (home / "alembic" / "script.py.mako").write_text(
        '"""${message}"""\nfrom alembic import op\nimport sqlalchemy as sa\nfrom sqlalchemy.dialects import postgresql\n'
        "revision = ${repr(up_revision)}\ndown_revision = ${repr(down_revision)}\n"
        "def upgrade():\n    ${upgrades}\ndef downgrade():\n    ${downgrades}\n")
    (home / "alembic" / "env.py").write_text(
        "from alembic import context\nconfig = context.config\n"
        "with config.attributes['engine'].connect() as c:\n"
        "    context.configure(connection=c, target_metadata=config.attributes['metadata'], compare_server_default=True)\n"
        "    with context.begin_transaction():\n        context.run_migrations()\n")
    config.attributes.update(engine=engine, metadata=metadata)


def differences(metadata):
    with engine.connect() as c:
        return autogenerate.compare_metadata(MigrationContext.configure(c, opts={"compare_server_default": True}), metadata)


def revise(version):
    env(models(version))
    command.revision(config, f"version {version}", autogenerate=True)
    command.upgrade(config, "head")


@step
def the_first_revision():
    revise(1)


@step
def nothing_differs_after_it():
    equal(differences(models(1)), [])


@step
def rows():
    with engine.begin() as c:
        c.execute(sa.text("INSERT INTO author (name) VALUES ('Ann'), ('Bob')"))
        c.execute(models(1).tables["book"].insert(), [
            {"title": f"b{i}", "author_id": 1 + i % 2, "price": i, "data": {"n": i}, "words": ["x", str(i)]} for i in range(5)])


@step
def the_second_revision():
    revise(2)


@step
def nothing_differs_after_the_second():
    equal(differences(models(2)), [])


@step
def rows_of_the_second():
    with engine.connect() as c:
        equal(c.execute(sa.text("SELECT sum(total), sum(pages) FROM book")).one(), (10, 5))


@step
def down_by_one():
    command.downgrade(config, "-1")


@step
def nothing_differs_from_the_first():
    equal(differences(models(1)), [])


@step
def current_and_offline():
    command.current(config, verbose=False)
    equal(len(list((home / "alembic" / "versions").glob("*.py"))), 2)


@step
def operations():
    with engine.begin() as c:
        op = Operations(MigrationContext.configure(c))
        op.rename_table("book", "books")
        op.alter_column("books", "title", new_column_name="name", type_=sa.String(30), nullable=True, server_default="?")
        op.alter_column("books", "price", type_=sa.Float, postgresql_using="price::float8")
        op.alter_column("books", "uid", type_=sa.String(36))
        op.drop_constraint("uq_book_uid", "books", type_="unique")
        op.create_unique_constraint("two", "books", ["uid", "name"], deferrable=True, initially="DEFERRED")
        op.create_check_constraint("cheap", "books", "price < 100")
        op.drop_constraint("fk_book_author_id", "books", type_="foreignkey")
        op.create_foreign_key("made_by", "books", "author", ["author_id"], ["id"], onupdate="CASCADE", ondelete="SET NULL")
        op.drop_index("ix_book_title")
        op.create_index("by_name", "books", ["name", sa.text("price DESC NULLS LAST")], postgresql_include=["made"])
        op.create_table_comment("books", "all of them")
        op.add_column("books", sa.Column("flag", sa.Boolean, server_default=sa.true(), nullable=False))
        op.bulk_insert(sa.table("author", sa.column("name")), [{"name": "Cy"}])
        op.execute("UPDATE author SET name = upper(name)")
        op.create_table("extra", sa.Column("a", sa.Integer, sa.Identity(always=True, start=5)), schema=None)
        op.execute("ALTER TYPE mood ADD VALUE 'calm'")
    i = sa.inspect(engine)
    equal([x["name"] for x in i.get_check_constraints("books")], ["cheap"])
    equal(i.get_foreign_keys("books")[0]["options"], {"onupdate": "CASCADE", "ondelete": "SET NULL"})
    equal(i.get_table_comment("books"), {"text": "all of them"})
    equal({x["name"] for x in i.get_unique_constraints("books")}, {"two"})
    index = next(x for x in i.get_indexes("books") if x["name"] == "by_name")
    equal((index["column_names"], index["dialect_options"]["postgresql_include"], index["column_sorting"]), (["name", "price"], ["made"], {"price": ("desc", "nulls_last")}))
    equal(i.get_enums()[0]["labels"], ["glad", "sad", "calm"])


@step
def a_revision_that_fails_leaves_nothing():
    try:
        with engine.begin() as c:
            op = Operations(MigrationContext.configure(c))
            op.create_table("half", sa.Column("a", sa.Integer))
            op.drop_column("books", "flag")
            op.execute("SELECT 1 / 0")
    except sa.exc.DBAPIError:
        pass
    i = sa.inspect(engine)
    equal((i.has_table("half"), "flag" in {c["name"] for c in i.get_columns("books")}), (False, True))


@step
def concurrently():
    with engine.connect() as c:
        context = MigrationContext.configure(c)
        with context.autocommit_block():
            Operations(context).create_index("now", "books", ["made"], postgresql_concurrently=True, if_not_exists=True)
            Operations(context).drop_index("now", postgresql_concurrently=True)


@step
def drop():
    with engine.begin() as c:
        for name in ("extra", "books", "author", "alembic_version"):
            c.execute(sa.text(f"DROP TABLE {name}"))
        c.execute(sa.text("DROP TYPE mood"))
    equal(sa.inspect(engine).get_table_names(), [])
