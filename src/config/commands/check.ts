import { become } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'

/** Runs the daemon's own check, so that one implementation judges a configuration. */
export const checkConfig: Program = async ({ arguments: [file] }) =>
  become('main.cjs', ['--check-config', ...(file === undefined ? [] : [`--config=${file}`])])
