# nix run github:sojourn-lab/sojourn -- compare --rate 10mbit --rtt 40ms pfifo codel
{
  description = "A laboratory for active queue management";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" "x86_64-darwin" ];
      each = of: nixpkgs.lib.genAttrs systems (system: of nixpkgs.legacyPackages.${system});
      version = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package.version;
    in {
      packages = each (pkgs: rec {
        default = sojourn;
        sojourn = pkgs.python3Packages.buildPythonApplication {
          pname = "sojourn";
          inherit version;
          pyproject = true;
          src = self;
          cargoDeps = pkgs.rustPlatform.importCargoLock { lockFile = ./Cargo.lock; };
          nativeBuildInputs = with pkgs.rustPlatform; [ cargoSetupHook maturinBuildHook ];
          # The extras plots, report and store: figures, pages, recorded tables.
          dependencies = with pkgs.python3Packages; [ duckdb jinja2 matplotlib msgspec numpy pyarrow rich typer ];
          pythonImportsCheck = [ "sojourn" ];
          meta = {
            homepage = "https://github.com/sojourn-lab/sojourn";
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "sojourn";
          };
        };
      });
    };
}
