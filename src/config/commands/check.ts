import { become } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'

/** The daemon's own check: one code that judges a configuration. */
export const checkConfig: Program = async ({ arguments: [file] }) =>
  become('main.cjs', ['--check-config', ...(file === undefined ? [] : [`--config=${file}`])])
