module terrane-fruit

go 1.21
