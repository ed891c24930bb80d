import type { Loaded } from './config/load.ts'
import { createConfiguration } from './create-configuration.ts'
import { checkReferencedFiles, configSchema, pairs, type Config } from './declarations.ts'

/** The effective configuration of the daemon and where each value came from. */
export type LoadedConfig = Loaded<Config>

/** The configuration of edgehostd. */
export const configuration = createConfiguration<Config>({ configSchema, pairs, checkReferencedFiles })

export const { parseCommandLine, loadConfig, explainConfig, helpText, defaultConfigFile } = configuration
