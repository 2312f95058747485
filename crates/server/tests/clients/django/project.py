"""Django: migrations that it writes itself, queries as the admin's, constraints, inspectdb, and back to nothing."""

import datetime
import decimal
import io
import os
import pathlib
import sys
import tempfile
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step

home = pathlib.Path(tempfile.mkdtemp())
app = home / "shop"
app.mkdir()
(app / "__init__.py").write_text("")
(app / "models.py").write_text("from models import *\n")
sys.path[:0] = [str(home), str(pathlib.Path(__file__).parent)]

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"],
        "PASSWORD": os.environ["PGPASSWORD"], "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
    }},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions",
                    "django.contrib.admin", "django.contrib.messages", "django.contrib.postgres", "shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True, SECRET_KEY="none", SILENCED_SYSTEM_CHECKS=["admin"],
)
django.setup()

from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery, Sum, Value, When, Window
from django.db.models.functions import Coalesce, Concat, Extract, Lower, Now, Rank, TruncDay, TruncMonth
from shop.models import Author, Book, Tag

command = lambda *a, **k: call_command(*a, verbosity=0, skip_checks=True, **k)


@step
def migrate():
    command("makemigrations", "shop")
    command("migrate")
    assert {"shop_book", "auth_user", "django_admin_log"} <= set(connection.introspection.table_names())


@step
def no_further_migration_is_needed():
    command("makemigrations", "shop", check=True)


@step
def insert():
    ann = Author.objects.create(name="Ann", email="ann@example.com", born=datetime.date(1970, 2, 3))
    bob = Author.objects.create(name="Bob", email="bob@example.com")
    tags = Tag.objects.bulk_create([Tag(name=n) for n in ("new", "old", "rare")])
    for i in range(10):
        book = Book.objects.create(
            title=f"Book {i}", author=ann if i % 2 else bob, price=decimal.Decimal("9.95") + i, pages=100 + i,
            isbn=uuid.UUID(int=i), data={"n": i, "in": {"list": [i, i + 1]}}, words=["a", f"w{i}"],
            lent=datetime.timedelta(days=i, hours=1), published=datetime.datetime(2024, 1 + i, 3, 4, 5, tzinfo=datetime.UTC))
        book.tags.add(tags[i % 3])
    equal(Book.objects.count(), 10)


@step
def read_back():
    book = Book.objects.select_related("author").get(title="Book 3")
    equal((book.author.name, book.price, book.isbn.int, book.data["in"]["list"], book.words, book.lent.days, book.total),
          ("Ann", decimal.Decimal("12.95"), 3, [3, 4], ["a", "w3"], 3, decimal.Decimal("1333.85")))
    equal(book.published.month, 4)


@step
def queries_of_the_admin():
    q = Book.objects.filter(Q(title__icontains="book") | Q(author__name__istartswith="an")).distinct()
    equal(q.filter(tags__name__in=["new"]).order_by("-pk").count(), 4)
    equal([b.title for b in q.order_by("-published", "id")[2:4]], ["Book 7", "Book 6"])
    equal(list(Book.objects.dates("published", "month"))[0], datetime.date(2024, 1, 1))
    equal(len(Book.objects.datetimes("published", "day", tzinfo=datetime.UTC)), 10)
    equal(list(Author.objects.prefetch_related(Prefetch("book_set", Book.objects.order_by("id"))).order_by("id")
               .values_list("book__title", flat=True).order_by("book__id")[:2]), ["Book 0", "Book 1"])
    equal(Book.objects.filter(published__year=2024, published__month__gte=9).count(), 2)


@step
def aggregates():
    a = list(Author.objects.annotate(n=Count("book"), s=Sum("book__price"), m=Max("book__pages")).order_by("name")
             .values_list("name", "n", "s", "m"))
    equal(a, [("Ann", 5, decimal.Decimal("74.75"), 109), ("Bob", 5, decimal.Decimal("69.75"), 108)])
    equal(Book.objects.aggregate(a=Avg("pages"), d=Sum(F("price") * F("pages"), output_field=models.DecimalField()))["a"], 104.5)
    equal(list(Book.objects.annotate(m=TruncMonth("published")).values("m").annotate(n=Count("*")).order_by("m"))[0]["n"], 1)
    equal(Author.objects.annotate(n=Count("book", filter=Q(book__pages__gt=105))).get(name="Ann").n, 2)


@step
def expressions():
    latest = Book.objects.filter(author=OuterRef("pk")).order_by("-id")
    a = Author.objects.annotate(last=Subquery(latest.values("title")[:1]), any=Exists(latest.filter(pages=109)))
    equal(list(a.order_by("id").values_list("last", "any")), [("Book 9", True), ("Book 8", False)])
    r = Book.objects.annotate(r=Window(Rank(), partition_by="author", order_by=F("pages").desc())).filter(r=1)
    equal(sorted(b.title for b in r), ["Book 8", "Book 9"])
    equal(Book.objects.annotate(k=Case(When(pages__lt=105, then=Value("thin")), default=Value("thick"))).filter(k="thin").count(), 5)
    equal(Author.objects.annotate(x=Concat(Lower("name"), Value("-"), Coalesce("email", Value("")), output_field=models.TextField())).get(name="Ann").x, "ann-ann@example.com")
    equal(Book.objects.filter(published__lt=Now()).annotate(w=Extract("published", "week")).order_by("id").first().w, 1)
    equal(Book.objects.annotate(e=F("published") + F("lent")).get(title="Book 1").e.day, 4)


@step
def json_fields():
    equal(Book.objects.filter(data__n=3).count(), 1)
    equal(Book.objects.filter(data__in__list__0=4).count(), 1)
    equal(Book.objects.filter(data__contains={"n": 5}).count(), 1)
    equal(Book.objects.filter(data__has_key="in").count(), 10)
    equal(Book.objects.filter(data__n__gt=6).count(), 3)


@step
def array_fields():
    equal(Book.objects.filter(words__contains=["w3"]).count(), 1)
    equal(Book.objects.filter(words__overlap=["w3", "w4"]).count(), 2)
    equal(Book.objects.filter(words__len=2).count(), 10)
    equal(Book.objects.filter(words__1="w5").count(), 1)


@step
def postgres_aggregates():
    from django.contrib.postgres.aggregates import ArrayAgg, StringAgg
    a = Author.objects.annotate(t=StringAgg("book__title", delimiter=",", ordering="book__id"),
                                p=ArrayAgg("book__pages", ordering="book__pages")).get(name="Bob")
    equal((a.t, a.p), ("Book 0,Book 2,Book 4,Book 6,Book 8", [100, 102, 104, 106, 108]))


@step
def update_and_delete():
    equal(Book.objects.filter(pages__gte=108).update(pages=F("pages") + 1, title=Concat("title", Value("!"))), 2)
    b, made = Book.objects.get_or_create(title="Book 9!", defaults={"pages": 1})
    equal((made, b.pages), (False, 110))
    b, made = Author.objects.update_or_create(email="cy@example.com", defaults={"name": "Cy"})
    equal(made, True)
    Tag.objects.bulk_create([Tag(name="new", note="again")], update_conflicts=True, unique_fields=["name"], update_fields=["note"])
    equal(Tag.objects.get(name="new").note, "again")
    Tag.objects.bulk_create([Tag(name="new")], ignore_conflicts=True)
    books = list(Book.objects.all())
    for x in books:
        x.pages += 1
    Book.objects.bulk_update(books, ["pages"])
    equal(Book.objects.aggregate(s=Sum("pages"))["s"], 1057)
    equal(Book.objects.get(title="Book 0").delete()[1], {"shop.Book_tags": 1, "shop.Book": 1})


@step
def constraints():
    for wrong in (dict(pages=0), dict(isbn=uuid.UUID(int=1)), dict(author_id=99999)):
        try:
            with transaction.atomic():
                Book.objects.create(**{**dict(title="w", author=Author.objects.first(), price=1, pages=1), **wrong})
                connection.check_constraints()
        except IntegrityError:
            continue
        raise AssertionError(wrong)


@step
def transactions():
    try:
        with transaction.atomic():
            Tag.objects.create(name="gone")
            with transaction.atomic():
                Tag.objects.create(name="inner")
            raise KeyError
    except KeyError:
        pass
    equal(Tag.objects.count(), 3)
    with transaction.atomic():
        equal(Book.objects.select_for_update(of=("self",), skip_locked=True).select_related("author").filter(pages__gt=0).count(), 9)
        list(Book.objects.select_for_update(of=("self",), skip_locked=True).select_related("author"))
        list(Book.objects.select_for_update(nowait=True, no_key=True))


@step
def users():
    from django.contrib.auth.models import Group, Permission, User
    u = User.objects.create_superuser("root", "root@example.com", "pw")
    g = Group.objects.create(name="staff")
    g.permissions.set(Permission.objects.filter(content_type__app_label="shop"))
    u.groups.add(g)
    equal(User.objects.filter(groups__permissions__codename="add_book").get(), u)
    u.user_permissions.add(Permission.objects.first())


@step
def iterators_and_explain():
    equal(sum(1 for _ in Book.objects.iterator(chunk_size=2)), 9)
    with transaction.atomic():
        equal(sum(1 for _ in Book.objects.iterator(chunk_size=2)), 9)
    assert Book.objects.filter(pages=1).explain()
    equal(Book.objects.raw("SELECT * FROM shop_book WHERE pages > %s ORDER BY id", [0])[0].title, "Book 1")
    equal(Book.objects.values("pages").union(Tag.objects.annotate(n=F("id")).values("n")).count() > 9, True)
    equal(Book.objects.in_bulk([2, 3], field_name="id")[3].title, "Book 2")


@step
def inspectdb():
    out = io.StringIO()
    call_command("inspectdb", stdout=out, include_views=True)
    text = out.getvalue()
    for piece in ("class ShopBook(", "author = models.ForeignKey(ShopAuthor", "price = models.DecimalField(max_digits=9, decimal_places=2",
                  "data = models.JSONField()", "isbn = models.UUIDField(unique=True", "title = models.CharField(max_length=80",
                  "lent = models.DurationField(", "db_comment='who wrote it'", "unique_together = (('book', 'tag'),)"):
        assert piece in text, f"{piece} is not in\n{text}"


@step
def introspection():
    with connection.cursor() as cursor:
        c = connection.introspection.get_constraints(cursor, "shop_book")
        equal(c["pages_positive"]["check"], True)
        equal(c["title_author"]["columns"], ["title", "author_id"])
        equal(c["rare"]["index"], True)
        equal(sum(x["foreign_key"] == ("shop_author", "id") for x in c.values()), 1)
        equal((c["rare"]["orders"], c["lower_title"]["columns"], c["data_gin"]["type"]), (["DESC"], [], "gin"))
        equal(connection.introspection.get_sequences(cursor, "shop_book")[0]["column"], "id")


change = """
from django.contrib.postgres.operations import *
from django.db import migrations, models
import django.db.models.deletion


def fill(apps, schema_editor):
    apps.get_model("shop", "Book").objects.update(rating=5)


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AddField("Book", "rating", models.SmallIntegerField(null=True)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField("Book", "rating", models.IntegerField(default=3, db_index=True)),
        migrations.AlterField("Book", "title", models.TextField()),
        migrations.AlterField("Book", "title", models.CharField(max_length=90)),
        migrations.RemoveField("Book", "total"),
        migrations.AlterField("Book", "pages", models.BigIntegerField()),
        migrations.RenameField("Author", "name", "full_name"),
        migrations.RenameModel("Tag", "Label"),
        migrations.AddConstraint("Author", models.UniqueConstraint(fields=["full_name", "born"], name="name_born")),
        migrations.AddConstraint("Author", models.UniqueConstraint(models.functions.Lower("email"), condition=models.Q(born=None), name="lower_email")),
        migrations.RemoveConstraint("Book", "pages_positive"),
        migrations.RenameIndex("Book", new_name="titles", old_name="title_author"),
        migrations.RemoveIndex("Book", "rare"),
        migrations.AlterUniqueTogether("Label", {("name", "note")}),
        migrations.AlterModelTable("Label", "labels"),
        migrations.CreateModel("Loan", [
            ("id", models.UUIDField(primary_key=True)),
            ("book", models.OneToOneField("shop.Book", django.db.models.deletion.CASCADE)),
            ("at", models.DateTimeField(auto_now_add=True, db_default=models.functions.Now()))]),
        migrations.AlterField("Author", "id", models.AutoField(primary_key=True)),
        migrations.RemoveField("Book", "lent"),
        migrations.AlterField("Author", "born", models.DateField(null=True, db_comment="a day")),
    ]
"""


@step
def a_second_migration():
    (app / "migrations" / "0002_change.py").write_text(change)
    command("migrate", "shop")
    with connection.cursor() as cursor:
        cursor.execute("SELECT rating, pg_typeof(rating)::text FROM shop_book LIMIT 1")
        equal(cursor.fetchone(), (5, "integer"))
        columns = {c.name: c for c in connection.introspection.get_table_description(cursor, "shop_author")}
        assert "full_name" in columns and columns["born"].comment == "a day"


@step
def migrations_without_transactions():
    (app / "migrations" / "0003_concurrent.py").write_text("""
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0002_change")]
    operations = [
        AddIndexConcurrently("Book", models.Index(fields=["pages"], name="pages_now")),
        RemoveIndexConcurrently("Book", "pages_now"),
    ]
""")
    command("migrate", "shop")


@step
def back():
    command("migrate", "shop", "0001")
    with connection.cursor() as cursor:
        assert "lent" in {c.name for c in connection.introspection.get_table_description(cursor, "shop_book")}
    equal(Book.objects.filter(author__name="Ann").count(), 5)


@step
def flush():
    command("flush", interactive=False)
    equal(Book.objects.count(), 0)
    equal(Tag.objects.create(name="first").pk, 1)


@step
def to_nothing():
    for name in ("shop", "admin", "sessions", "auth", "contenttypes"):
        command("migrate", name, "zero")
    equal(connection.introspection.table_names(), ["django_migrations"])
