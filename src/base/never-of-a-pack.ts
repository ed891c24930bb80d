const names = new Set(['.git', '.svn', '.hg', '.DS_Store', '__MACOSX'])

/**
 * Whether a file or folder is of version control or of a desktop, which is never a part of a pack. A tar of macOS has a file `._web` beside each
 * `web` with extended attributes.
 */
export const isNeverOfAPack = (name: string): boolean => names.has(name) || name.startsWith('._')
