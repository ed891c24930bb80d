import * as commandLine from '../config/command-line.ts'
import * as explain from '../config/explain.ts'
import * as load from '../config/load.ts'
import { defaultStateDirectory } from '../program/config.ts'
import type { Finding, ReferenceCheck } from './room.ts'
import type { Sum } from './declarations.ts'

export interface LoadConfigOptions extends Omit<load.LoadConfigOptions, 'schema' | 'pairs' | 'inspect'> {
  /**
   * If set, the cryptographic keys, files and mounts that the configuration names are checked too. Called for each file that could not
   * be checked, because only root may read it.
   */
  readonly onUnseen?: (file: string) => void
}

export interface ConfigurationOptions extends Pick<Sum, 'configSchema' | 'pairs'> {
  /** Checks all cryptographic keys and files that a configuration names. */
  readonly checkReferencedFiles: (check: ReferenceCheck) => Promise<readonly Finding[]>
}

/** The configuration of one program. */
export interface Configuration<Config> {
  /** `parseCommandLine` of the room `config`, with the schema of the program. */
  parseCommandLine(argv: readonly string[]): commandLine.CommandLine
  /** `loadConfig` of the room `config`, with the schema of the program. */
  loadConfig(options: LoadConfigOptions): Promise<load.Loaded<Config>>
  /** The effective configuration as YAML; see `explainConfig` of the room `config`. */
  explainConfig(loaded: explain.Explainable): string
  /** The text of `--help`. */
  helpText(): string
  /** The text of the configuration file that the package installs. */
  defaultConfigFile(): string
}

/** @typeParam Config the type that the schema describes */
export function createConfiguration<Config>({
  configSchema,
  pairs,
  checkReferencedFiles,
}: ConfigurationOptions): Configuration<Config> {
  return {
    parseCommandLine: (argv) => commandLine.parseCommandLine(argv, configSchema),
    async loadConfig({ onUnseen, ...options }) {
      const inspect =
        onUnseen &&
        ((value: (path: string) => unknown) => {
          const directory = value('state.directory')
          const stateDirectory = typeof directory === 'string' ? directory : defaultStateDirectory
          return checkReferencedFiles({ value, stateDirectory, onUnseen })
        })
      const loaded = await load.loadConfig({
        schema: configSchema,
        pairs,
        ...options,
        ...(inspect ? { inspect } : {}),
      })
      // Every value was checked against the schema, and a test checks the defaults.
      return loaded as load.Loaded<Config>
    },
    explainConfig: (loaded) => explain.explainConfig(loaded, configSchema),
    helpText: () => explain.helpText(configSchema),
    defaultConfigFile: () => explain.defaultConfigFile(configSchema),
  }
}
