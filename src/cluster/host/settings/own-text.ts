/** First line of every file that edgehostd places beside those of an administrator. */
export const ownMark = '# Written by edgehostd for its cluster; removed when the cluster is deleted.'

/** Whether a file was placed by edgehostd. */
export const isOwnText = (text: string): boolean => text.startsWith(`${ownMark}\n`)
