import type { StartError } from './start-error.ts'

/** Whether a file could not be read because only root may read it, and this process is not root. */
export const isForRoot = ({ cause }: Pick<StartError, 'cause'>): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'EACCES' && process.geteuid?.() !== 0
