"""The models of the app `shop`."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Now


class Author(models.Model):
    name = models.CharField(max_length=40, db_index=True)
    email = models.EmailField(unique=True, null=True)
    born = models.DateField(null=True)

    class Meta:
        app_label = "shop"


class Tag(models.Model):
    name = models.SlugField(unique=True)
    note = models.TextField(default="", blank=True)

    class Meta:
        app_label = "shop"


class Book(models.Model):
    title = models.CharField(max_length=80)
    author = models.ForeignKey(Author, models.CASCADE, db_comment="who wrote it")
    tags = models.ManyToManyField(Tag)
    price = models.DecimalField(max_digits=9, decimal_places=2)
    pages = models.PositiveIntegerField()
    isbn = models.UUIDField(unique=True, null=True)
    data = models.JSONField(default=dict)
    words = ArrayField(models.CharField(max_length=10), default=list)
    lent = models.DurationField(null=True)
    published = models.DateTimeField(null=True)
    stored = models.DateTimeField(db_default=Now())
    total = models.GeneratedField(
        expression=F("price") * F("pages"), output_field=models.DecimalField(max_digits=12, decimal_places=2), db_persist=True)
    cover = models.BinaryField(default=b"\x00\xff")
    ok = models.BooleanField(default=True)

    class Meta:
        app_label = "shop"
        ordering = ["id"]
        constraints = [models.CheckConstraint(condition=Q(pages__gt=0), name="pages_positive")]
        indexes = [
            models.Index(fields=["title", "author"], name="title_author"),
            models.Index(fields=["-pages"], condition=Q(ok=True), name="rare"),
            models.Index(Lower("title"), name="lower_title"),
            GinIndex(fields=["data"], name="data_gin"),
        ]
