const names = new Set(['.git', '.svn', '.hg', '.DS_Store'])

/** Whether a file or folder is of version control or of a desktop, which is never a part of a pack. */
export const isNeverOfAPack = (name: string): boolean => names.has(name)
